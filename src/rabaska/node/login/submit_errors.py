"""What a scheduler's submit command says when it surely took no job.

Any other failure may come after the job was taken: a lost connection, a signal, a site's wrapper
that failed when the scheduler was done. There the queue is looked at before anything is believed.
"""

import re

from ..record.submissions import JOB_ID, NO_ANSWER, NOT_SENT
from .pending_submissions import SubmitAnswer

_NOT_RUN = (126, 127)  # as shells say that there is no such command, or not for us

# Who speaks: only the scheduler's own command knows. What a wrapper says proves nothing.
_SPEAKER = (
    r"sbatch: (?:error|fatal): |sbatch: (?=unrecognized|invalid)|(?:\[)?(?:qsub|msub|sqsub): |"
    r"Unable to run job: |Unable to read script file"
)
# `ERROR: ` alone is anybody's: these words after it are a scheduler's. It took no job.
_NOT_SUBMITTED = r"Batch job submission failed: |Unable to run job: |cannot submit job"
# Collected from tests/recordings, knowledge/failures.toml and slurm_errno.c.
_REFUSAL = (
    r"invalid|illegal|unknown|unrecognized|unauthorized|denied|rejected|violates|exceed|"
    r"not (?:be )?(?:permitted|allowed|enabled|available|satisfied)|cannot (?:be|satisfy|locate)|"
    r"specification|mutually exclusive|more processors requested|bad [ug]id|no such file|"
    r"maximum number|limit reached|submit(?: ?jobs?)?\w* ?limit|multiple|must |does not look like|"
    r"dos line breaks|script is empty|unable to open|submitting jobs from"
)
_REFUSED = re.compile(
    r"^(?:{}).*(?:{})|^ERROR:\s+(?:{})|^usage: |^here: (?!\[Errno)".format(
        _SPEAKER, _REFUSAL, _NOT_SUBMITTED
    ),
    re.MULTILINE | re.IGNORECASE,
)


def is_certain(answer: SubmitAnswer) -> bool:
    """Whether it is known what became of the job: it has an id, or it was refused."""
    text = answer.complained + "\n" + answer.said
    if answer.exit_code == 0 or has_id(answer):
        return answer.exit_code == 0 and has_id(answer)
    if answer.exit_code in _NOT_RUN or NOT_SENT in text:
        return True
    return answer.exit_code > 0 and not no_answer(answer) and bool(_REFUSED.search(text))


def has_id(answer: SubmitAnswer) -> bool:
    """Whether a job's id was printed: then it may be taken, whatever failed after that."""
    return JOB_ID.search(answer.said) is not None


def no_answer(answer: SubmitAnswer) -> bool:
    """Whether nobody said anything about the job, which may show up in the queue much later."""
    text = answer.complained + "\n" + answer.said
    if answer.exit_code <= 0 or not text.strip():
        return True
    return NO_ANSWER.search(text) is not None and NOT_SENT not in text
