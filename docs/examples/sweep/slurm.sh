#!/bin/bash
#SBATCH --job-name=fairlap
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=02:00:00

# Starts Ray on all nodes of the job, runs a sweep on them, and ends Ray with the job.
# sbatch slurm.sh mlp.toml, or: sbatch slurm.sh --resume last
# PYTHON is an environment with fairlap[sweep] on a file system that all nodes share.
set -euo pipefail

python=${PYTHON:-$HOME/fairlap/bin/python}
bin=$(dirname "$python")
port=6379
export FAIRLAP_STORE=${FAIRLAP_STORE:-$HOME/sweeps.sqlite}
export RAY_USAGE_STATS_ENABLED=0
export RAY_worker_niceness=0 # Ray would give blocks a lower priority than everything else

# Only the nodes of this job have the token.
RAY_AUTH_TOKEN=$("$python" -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# The first node coordinates and measures nothing; each of the others measures one block at a time.
srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \
  "$bin/ray" start --head --node-ip-address="$address" --port="$port" --num-cpus=0 --include-dashboard=false --block &
sleep 10
srun --overlap --nodes="$((${#nodes[@]} - 1))" --ntasks-per-node=1 --exclude="$head" \
  "$bin/ray" start --address="$address:$port" --block &
sleep 20

RAY_ADDRESS="$address:$port" "$bin/fairlap" sweep --cluster auto "$@"
