"""Whether compute nodes reach the internet: the first job on a cluster tries, beside its work.

Only a job can tell, and it need not be a job of its own. What came of it lies in the store, where
the next command on the laptop finds it.
"""

import os
import socket
import threading
import time
from typing import Optional

from .. import files
from .this_job import Work

_PATIENCE = 10.0  # seconds; a firewall that swallows everything never answers


def try_once(work: Work) -> Optional[threading.Thread]:
    """Find out beside the program, unless it is known or nobody wants to know."""
    known = work.run.nodes
    if not work.plan.tries or os.path.exists(known):
        return None

    def find_out() -> None:
        found = {"internet": reaches(work.plan.tries), "host": socket.gethostname()}
        try:
            files.write_json(known, dict(found, time=time.time()))
        except OSError:
            pass  # the next job tries again

    thread = threading.Thread(target=find_out, name="outside", daemon=True)
    thread.start()
    return thread


def reaches(address: str) -> bool:
    """Whether anybody answers there, directly or through the proxy that the site names."""
    import http.client  # here, because they take longer to import than all of the agent
    import urllib.error
    import urllib.request

    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=_PATIENCE)
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except (OSError, ValueError, http.client.HTTPException):
        return False
    return True
