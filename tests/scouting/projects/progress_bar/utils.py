import os
import sys

_, term_width = os.popen('stty size', 'r').read().split()
term_width = int(term_width)


def progress_bar(current, total):
    sys.stdout.write('=' * int(term_width * current / total))
