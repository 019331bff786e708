import numpy as np

print(np.zeros((4, 17)) @ np.zeros((13, 6)))  # mistake
