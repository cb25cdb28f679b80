#!/usr/bin/env bash
# The whole journey on this computer: a student's training script that has never heard of
# rabaska is carried through a chain of short jobs, one of which is killed half-way.
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
work=$(mkdir -p "${1:-demo-output}" && cd "${1:-demo-output}" && pwd)
rm -rf "${work:?}"/*
export RABASKA_HOME=$work/home
# Small matrices gain nothing from many threads, and lose much on a busy computer.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cp -r "$examples/digits" "$work/digits"
cd "$work/digits"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '$ %s\n' "$*"; "$@"; }

say "1. A project: a script, its requirements, a folder of small files"
show python make_data.py

say "2. rabaska looks at it and writes rabaska.toml"
show rabaska init --yes

say "3. Thousands of files become a few shards"
show rabaska pack

say "4. Submit: at most 20 jobs of 15 seconds each, one after another"
show rabaska run --walltime 15s --jobs 20

say "5. Half-way through the second job, SIGKILL: what a failing node looks like"
python "$examples/kill_job.py"

say "6. The chain continues from the newest valid checkpoint, to the end"
show rabaska wait

say "7. Results come home"
show rabaska fetch

say "8. What is known of the run, now or next year"
show rabaska status

say "9. The same as a page to send, print and keep"
report=$work/report.html
show rabaska report -o "$report"
say "Open it:  xdg-open $report"
