#!/bin/bash
#SBATCH --job-name=cats-7f3a
#SBATCH --account=def-prof
#SBATCH --time=1-00:00:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=22000M
#SBATCH --array=1-3%1
#SBATCH --signal=B:USR1@300
#SBATCH --mail-user=ada@example.org
#SBATCH --mail-type=BEGIN,END,FAIL
#SBATCH --output="$HOME/projects/def-sponsor00/$USER/rabaska/runs/cats-7f3a/logs/scheduler-%A_%a.out"
#SBATCH --requeue
#SBATCH --open-mode=append

# rabaska: run cats-7f3a, up to 3 jobs of 24 h each.

# Files of rabaska are private; your program gets your own umask
RABASKA_UMASK="$(umask)"
export RABASKA_UMASK
umask 077

# The environment
type module >/dev/null 2>&1 || source /etc/profile
module load python/3.8 || export RABASKA_SETUP_FAILED='`module load python/3.8` failed'
RABASKA_SPACE="$(python3 '$HOME/projects/def-sponsor00/$USER/rabaska/node/0123456789abcdef.pyz' job-folder --owner $$ "$SLURM_TMPDIR")" &&
export RABASKA_SPACE RABASKA_ENV="$RABASKA_SPACE/env" &&
srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 bash -e <<END &&
python3 '$HOME/projects/def-sponsor00/$USER/rabaska/node/0123456789abcdef.pyz' job-folder --at "$RABASKA_SPACE"
virtualenv --no-download "$RABASKA_ENV"
source "$RABASKA_ENV/bin/activate"
python3 '$HOME/projects/def-sponsor00/$USER/rabaska/node/0123456789abcdef.pyz' install "$RABASKA_ENV" -- pip install --quiet --no-index --find-links="/cvmfs/soft.computecanada.ca/custom/python/wheelhouse/gentoo2023/x86-64-v3" --find-links="/cvmfs/soft.computecanada.ca/custom/python/wheelhouse/gentoo2023/generic" --find-links="/cvmfs/soft.computecanada.ca/custom/python/wheelhouse/generic" -r '$HOME/projects/def-sponsor00/$USER/rabaska/envs/31f7a339af27c4aa.txt'
END
source "$RABASKA_ENV/bin/activate" ||
  export RABASKA_SETUP_FAILED='its environment could not be made'

# Facts about this job for rabaska
export RABASKA_JOB_ID="${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_JOB_ID:+_$SLURM_ARRAY_TASK_ID}"
export RABASKA_JOB_ENDS="${SLURM_JOB_END_TIME:-$(timeout 20 squeue --noheader --jobs=$SLURM_JOB_ID --format=%e)}"
export RABASKA_LOCAL="$SLURM_TMPDIR"
export RABASKA_CANCEL_REST="${SLURM_ARRAY_JOB_ID:+scancel --state=PENDING $SLURM_ARRAY_JOB_ID}"
export RABASKA_WAITING="squeue --me --noheader --array --states=PENDING --name=$SLURM_JOB_NAME --format=%i"
export RABASKA_ONE_AT_A_TIME="yes"
export RABASKA_ASK_END="timeout 20 squeue --noheader --jobs=$SLURM_JOB_ID --format=%e"
export RABASKA_EXCLUDE="$([ "${SLURM_ARRAY_TASK_ID:-0}" -lt "${SLURM_ARRAY_TASK_MAX:-0}" ] && echo "scontrol update JobId=${SLURM_ARRAY_JOB_ID}_$((SLURM_ARRAY_TASK_ID + 1))-$SLURM_ARRAY_TASK_MAX ExcNodeList=NODES")"
export RABASKA_NODES="sinfo --noheader --Node -p $SLURM_JOB_PARTITION --format=%N,%c,%m,%G,%f"

# Claim the run, stage the data, train, save, and record how it ended
exec python3 '$HOME/projects/def-sponsor00/$USER/rabaska/node/0123456789abcdef.pyz' run '$HOME/projects/def-sponsor00/$USER/rabaska/runs/cats-7f3a'
