#!/bin/bash
#PBS -N cats-7f3a
#PBS -A def-prof
#PBS -l walltime=12:00:00
#PBS -l nodes=2:gpus=16
#PBS -l feature=k80
#PBS -m bea -M ada@example.org
#PBS -r y
#PBS -S /bin/bash
#PBS -j oe
#PBS -o /dev/null

# rabaska: run cats-7f3a, up to 3 jobs of 12 h each.

# Files of rabaska are private; your program gets your own umask
RABASKA_UMASK="$(umask)"
export RABASKA_UMASK
umask 077

# Write the output to the log while the job runs
exec >>'$RAP/rabaska/runs/cats-7f3a/logs'/scheduler-"${MOAB_JOBID:-${PBS_JOBID%%.*}}".out 2>&1

# The environment
type module >/dev/null 2>&1 || source /etc/profile
module load cuda/8.0.44 libs/cuDNN/6 apps/python/3.5.0 || export RABASKA_SETUP_FAILED='`module load cuda/8.0.44 libs/cuDNN/6 apps/python/3.5.0` failed'
RABASKA_SPACE="$(python3 '$RAP/rabaska/node/0123456789abcdef.pyz' job-folder --owner $$ "$LSCRATCH")" &&
export RABASKA_SPACE RABASKA_ENV="$RABASKA_SPACE/env" &&
python3 '$RAP/rabaska/node/0123456789abcdef.pyz' on-nodes '--reach=cat "$PBS_NODEFILE"; pbsdsh -n {place} --' --nodes=2 -- bash -e <<END &&
python3 '$RAP/rabaska/node/0123456789abcdef.pyz' job-folder --at "$RABASKA_SPACE"
virtualenv --no-download "$RABASKA_ENV"
source "$RABASKA_ENV/bin/activate"
python3 '$RAP/rabaska/node/0123456789abcdef.pyz' install "$RABASKA_ENV" -- pip install --quiet --no-index -r '$RAP/rabaska/envs/e307ea1b16615bf9.txt'
END
source "$RABASKA_ENV/bin/activate" ||
  export RABASKA_SETUP_FAILED='its environment could not be made'

# Facts about this job for rabaska
export RABASKA_JOB_ID="${MOAB_JOBID:-${PBS_JOBID%%.*}}"
export RABASKA_JOB_ENDS="$(($(date +%s) - SECONDS + ${PBS_WALLTIME:-0}))"
export RABASKA_LOCAL="$LSCRATCH"

# Claim the run, stage the data, train, save, and record how it ended
exec python3 '$RAP/rabaska/node/0123456789abcdef.pyz' run '$RAP/rabaska/runs/cats-7f3a'
