"""The embedded cluster: sbatch, squeue and scancel for one computer, with no daemon to start.

<queue>/
  capacity.json         how many jobs may run at once, when the user says so
  line                  a lock: who takes slots, takes them alone
  active/<id>           one empty file for each job that may still hold slots
  jobs/<id>/            made by mkdir, so an id is given once
    job.json  script    what was submitted
    keeper              a lock that the job's keeper holds for its whole life; its pid, for people
    keeper.log          what the keeper had to say, should it ever fail
    more-<mark>         one more element was asked for, by a job that needs another
    cancel  cancel-<k>  somebody asked to stop all of the job, or element k
    <k>.begun.json      slots, local folder, when it began and must end
    <k>.ended.json      state, exit code, reason, when

The kernel drops the keeper's lock however the keeper ends, so an element without a record of its
end is either running (lock held) or lost (lock free). Nothing here trusts a pid.
"""
