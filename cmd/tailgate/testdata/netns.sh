#!/bin/sh
# netns.sh N TRACE OUT: replays TRACE by N shards, each in a network namespace of its own on one bridge, against an engine
# in another. Runs inside `unshare -n -m`, so that nothing of it outlives it; needs root, ip and nsenter.
set -eu
n=$1 trace=$2 out=$3
mount -t tmpfs none /run
ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.254/24 dev br0
ip link set br0 up
for i in $(seq 0 $((n - 1))); do
  ip netns add "s$i"
  ip link add "v$i" type veth peer name eth0 netns "s$i"
  ip link set "v$i" master br0 up
  ip -n "s$i" addr add "10.77.0.$((i + 1))/24" dev eth0
  ip -n "s$i" link set eth0 up
  ip -n "s$i" link set lo up
done
tailgate sim --listen 10.77.0.254:8000 &
engine=$!
trap 'kill $engine' EXIT
pids=
for i in $(seq $((n - 1)) -1 0); do
  nsenter --net="/run/netns/s$i" tailgate replay "$trace" --target http://10.77.0.254:8000 --wait-ready 20s --barrier 10.77.0.1:7700 \
    --barrier-timeout 60s --shard "$i/$n" --out "$out" --quiet --json >"$out.$i.json" &
  pids="$pids $!"
done
code=0
for pid in $pids; do
  wait "$pid" || case $? in 4) ;; *) code=1 ;; esac
done
exit $code
