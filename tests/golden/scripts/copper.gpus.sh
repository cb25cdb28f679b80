#!/bin/bash
# sqsub -r 240m -o '/work/$USER/rabaska/runs/cats-7f3a/logs/scheduler-%J.out' -q gpu -j cats-7f3a -n 8 -f mpi --gpp=1 --mpp=4096M --nompirun --mail-start --mail-end

# rabaska: run cats-7f3a, up to 3 jobs of 4 h each.

# Files of rabaska are private; your program gets your own umask
RABASKA_UMASK="$(umask)"
export RABASKA_UMASK
umask 077

# The environment
RABASKA_SPACE="$(python3 '/work/$USER/rabaska/node/0123456789abcdef.pyz' job-folder --owner $$ "/tmp/$USER")" &&
export RABASKA_SPACE &&
RABASKA_ENV="$(python3 '/work/$USER/rabaska/node/0123456789abcdef.pyz' kept-env 67c83dce21a600b2 '/work/$USER/rabaska/envs/67c83dce21a600b2.txt' "/tmp/$USER" <<'END'
virtualenv --no-download "$RABASKA_ENV" &&
source "$RABASKA_ENV/bin/activate" &&
python3 '/work/$USER/rabaska/node/0123456789abcdef.pyz' install "$RABASKA_ENV" -- pip install --quiet --no-index -r '/work/$USER/rabaska/envs/67c83dce21a600b2.txt'
END
)" &&
export RABASKA_ENV &&
source "$RABASKA_ENV/bin/activate" ||
  export RABASKA_SETUP_FAILED='its environment could not be made'

# Facts about this job for rabaska
export RABASKA_JOB_ID="${LSB_JOBID:-${PBS_JOBID%%.*}}"
export RABASKA_JOB_ENDS="$(($(date +%s) - SECONDS + 14400))"
export RABASKA_LOCAL="/tmp/$USER"

# Claim the run, stage the data, train, save, and record how it ended
exec python3 '/work/$USER/rabaska/node/0123456789abcdef.pyz' run '/work/$USER/rabaska/runs/cats-7f3a'
