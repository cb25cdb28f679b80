import numpy as np

letters = np.array([ord(letter) for letter in "to be or not to be" * 100], dtype=np.uint16)
letters.tofile("train.bin")
