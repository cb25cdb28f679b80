import sys

import numpy as np

data_dir = sys.argv[1]
out_dir = sys.argv[2]

for step in range(10):
    np.save(f"{out_dir}/weights", np.zeros(3))
