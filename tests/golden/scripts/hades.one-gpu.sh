#!/bin/bash
#PBS -N cats-7f3a
#PBS -A def-prof
#PBS -l walltime=24:00:00
#PBS -l nodes=1:ppn=1:gpus=1
#PBS -q @hades
#PBS -m bea -M ada@example.org
#PBS -r y
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /dev/null

# rabaska: run cats-7f3a, up to 3 jobs of 24 h each.

# Files of rabaska are private; your program gets your own umask
RABASKA_UMASK="$(umask)"
export RABASKA_UMASK
umask 077

# Write the output to the log while the job runs
exec >>'$HOME/rabaska/runs/cats-7f3a/logs'/scheduler-"${SLURM_JOB_ID:-${PBS_JOBID%%.*}}".out 2>&1

# The environment
type module >/dev/null 2>&1 || source /etc/profile
module load CUDA/7.5 || export RABASKA_SETUP_FAILED='`module load CUDA/7.5` failed'
RABASKA_SPACE="$(python3 '$HOME/rabaska/node/0123456789abcdef.pyz' job-folder --owner $$ "$LSCRATCH")" &&
export RABASKA_SPACE RABASKA_ENV="$RABASKA_SPACE/env" &&
virtualenv --no-download "$RABASKA_ENV" &&
source "$RABASKA_ENV/bin/activate" &&
python3 '$HOME/rabaska/node/0123456789abcdef.pyz' install "$RABASKA_ENV" -- pip install --quiet --no-index -r '$HOME/rabaska/envs/baa219dec46cefcc.txt' ||
  export RABASKA_SETUP_FAILED='its environment could not be made'

# Facts about this job for rabaska
export RABASKA_JOB_ID="${SLURM_JOB_ID:-${PBS_JOBID%%.*}}"
export RABASKA_JOB_ENDS="$(($(date +%s) - SECONDS + ${PBS_WALLTIME:-0}))"
export RABASKA_LOCAL="$LSCRATCH"
export RABASKA_CANCEL_REST="sh -c 'qselect -u $(id -un) -N cats-7f3a -s HQW | xargs -r -n 1 qdel 2>/dev/null; ! qselect -u $(id -un) -N cats-7f3a -s HQW | grep -q .'"
export RABASKA_WAITING="qselect -u $(id -un) -N cats-7f3a -s HQW"

# Claim the run, stage the data, train, save, and record how it ended
exec python3 '$HOME/rabaska/node/0123456789abcdef.pyz' run '$HOME/rabaska/runs/cats-7f3a'
