#!/bin/sh
# start.sh FOLDER PROGRAMS PORT...: be a node until killed. FOLDER has the settings that lab/realnode.py
# writes. Pods reach this machine's 127.0.0.1:PORT as 10.213.0.1:PORT, and this machine reaches Pods and
# Services by their addresses. Mounts, network, rules and processes are in namespaces: the kernel ends them.
set -eu
if [ "${1:-}" != inside ]; then
  exec 9</proc/self/ns/net   # this machine's network
  exec unshare --mount --net --pid --ipc --uts --fork --kill-child --mount-proc "$0" inside "$@"
fi
folder=$2 programs=$3
shift 3
cd "$folder"
here() { nsenter --net=/proc/self/fd/9 "$@"; }

mount --make-rprivate / && mount --make-rshared /   # what the kubelet mounts must reach Pods, not this machine
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p var .var
mount -t overlay -o "lowerdir=/var,upperdir=$folder/var,workdir=$folder/.var" overlay /var   # logs, and what CNI notes
while read -r setting wanted; do   # the kubelet would change them for the whole machine: it sees them as it wants
  echo "$wanted" >"/run/${setting##*/}"
  mount --bind "/run/${setting##*/}" "/proc/sys/$setting"
done <<END
vm/overcommit_memory 1
kernel/panic 10
kernel/panic_on_oops 1
END

ip link set lo up
ip link add eth0 type veth peer name orderkit0 netns /proc/self/fd/9
ip address add 10.213.0.2/30 dev eth0
ip link set eth0 up
here ip address add 10.213.0.1/30 dev orderkit0
here ip link set orderkit0 up
here ip route add 10.213.0.0/16 via 10.213.0.2
echo 1 >/proc/sys/net/ipv4/ip_forward
for port in "$@"; do
  here socat "TCP-LISTEN:$port,bind=10.213.0.1,reuseaddr,fork" "TCP:127.0.0.1:$port" &
done
dnsmasq --keep-in-foreground --user=root --pid-file --no-resolv --no-hosts --bind-interfaces \
  --listen-address=10.213.0.2 --local=/local/ --local=/svc/ \
  --host-record=kubernetes.default.svc,kubernetes.default.svc.cluster.local,10.213.2.1 &

# a Pod's first process: it holds the namespaces
mkdir -p pause/bin
cp /bin/busybox pause/bin
tar --directory pause --create --file layer.tar .
digest=$(sha256sum layer.tar | cut -d ' ' -f 1)
cat >config.json <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:$digest"]},
 "config": {"Entrypoint": ["/bin/busybox", "sleep", "infinity"]}}
END
echo '[{"Config": "config.json", "RepoTags": ["orderkit.local/pause:1"], "Layers": ["layer.tar"]}]' >manifest.json
tar --create --file pause.tar manifest.json config.json layer.tar

containerd --config containerd.toml >containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
ctr --namespace k8s.io images import pause.tar
"$programs/kube-scheduler" --kubeconfig=kubeconfig --leader-elect=false --bind-address=127.0.0.1 >scheduler.log 2>&1 &
"$programs/kube-proxy" --config=proxy.yaml >proxy.log 2>&1 &
"$programs/kubelet" --config=kubelet.yaml --kubeconfig=kubeconfig --root-dir=/run/kubelet \
  --cert-dir=/run/kubelet/pki --hostname-override=node --node-ip=10.213.0.2 >kubelet.log 2>&1 &
kubelet=$!
ctr --namespace k8s.io images import --base-name image.local/orderkit image.tar   # beside the rest: half a minute
while read -r name; do
  ctr --namespace k8s.io images tag image.local/orderkit:orderkit "$name"
done <image.names
wait $kubelet   # and reap what Pods leave: this is process 1 of the node
