"""Counts steps and gives signs of life. The first node rank keeps its count as a checkpoint, and the next attempt goes on
from there: what is done is not done again.

    python3 countSteps.py DIRECTORY    for the signs of life, and for the checkpoint
"""

import os
import sys
import time

import signOfLife

directory = sys.argv[1]
signOfLife.begin(directory)

checkpoint = os.path.join(directory, f"{os.environ['MUSTER_JOB_ID']}.step")
step = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
print(f"goes on from step {step} in a world of {os.environ['WORLD_SIZE']}", flush=True)
while True:
    step += 1
    if os.environ["MUSTER_NODE_RANK"] == "0":
        with open(checkpoint + ".new", "w") as file:
            file.write(str(step))
        os.replace(checkpoint + ".new", checkpoint)
    time.sleep(0.1)
