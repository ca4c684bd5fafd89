#!/usr/bin/env bash
# Synchronizes three devices through programs that people use for that, while agents, writers, and these programs are stopped and killed.
# `Scripts/sync-real.sh help` describes the options.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$PWD/Scripts/$(basename "$0")

usage() {
    cat <<'TEXT'
Scripts/sync-real.sh [OPTIONS] syncthing|git|rsync|etcd ...

For each transport, three devices with a keychain and a folder of their own write 10,000 times, also the same items at once. The transport keeps
the folders equal. Meanwhile processes are stopped, continued, and killed. At the end everything runs until nothing changes. Then the
devices must be equal, and each acknowledged write must be visible, replaced or deleted by a write that saw it, or a conflict copy.

With etcd the devices share a cluster of three servers, or with --short one, in place of folders. Besides stops and kills of servers, the cluster is
compacted and defragmented, its quota is used up for a while, an object is removed, and it is restored from an earlier snapshot.

    --short         fewer writes, and without arguments through rsync, git, and Syncthing if it is installed; for automatic checks
    --seed N        another choice of writes, faults, and moments (default: 1). How processes interleave varies, so a failure may not appear again.
    --writes N      another number of writes
    --lose          plants a fault: removes a batch from all folders before any other device has read it
    --self-test     demands that the planted fault is found
    --keep          keeps the files, and prints their directory

Exits with 0 if nothing was lost, 1 if something was, and 2 if a transport is not installed. The network is used on the loopback interface only.
TEXT
}

# MARK: Transports

git_() { git -C "$folder" "$@"; }

# One exchange of device $1. A killed git leaves locks; the lock of the shared repository is one only while this process has its own.
exchange_git() {
    local folder=$root/folder-$1
    find "$folder/.git" -name '*.lock' -delete
    git_ add -A keychain-sync-1
    git_ diff --cached --quiet || git_ commit --quiet -m "device $1"
    # A killed checkout leaves a torn file, which becomes a part of the next commit. The other side has the complete one.
    git_ pull --quiet --no-rebase --no-edit -X theirs origin main || git_ merge --abort || true
    flock "$root/repository.lock" bash -c "find '$root/repository.git' -name '*.lock' -delete; git -C '$folder' push --quiet origin HEAD:main" || true
}

# One exchange of device $1 with the next one. No file is replaced in place, and a killed rsync leaves files that begin with a dot.
exchange_rsync() {
    local one=$root/folder-$1 other=$root/folder-$(($1 % 3 + 1))
    rsync -a --exclude='.*' "$one/" "$other/" && rsync -a --exclude='.*' "$other/" "$one/" || true
}

prepare_git() {
    local folder
    git init --quiet --bare -b main "$root/repository.git"
    git -C "$root/repository.git" config gc.auto 0
    for folder in "$root"/folder-?; do
        git_ init --quiet -b main
        git_ config gc.auto 0
        git_ config merge.renames false
        git_ config user.name device
        git_ config user.email device@localhost
        git_ remote add origin "$root/repository.git"
        git_ commit --quiet --allow-empty -m "empty"
    done
    # Histories with a common beginning can be merged.
    folder=$root/folder-1; git_ push --quiet origin main
    for folder in "$root"/folder-[23]; do git_ fetch --quiet; git_ reset --quiet --hard origin/main; done
}

prepare_rsync() { :; }

prepare_syncthing() {
    local device ids=() ports=() port
    for device in 1 2 3; do
        syncthing generate --no-default-folder --skip-port-probing --home="$root/syncthing-$device" >"$root/syncthing-$device.log" 2>&1
        ids+=("$(syncthing --home="$root/syncthing-$device" --device-id)")
        # A port on which nothing accepts a connection.
        while port=$((20000 + SRANDOM % 12000)); (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
        ports+=("$port")
        mkdir "$root/folder-$device/.stfolder"
    done
    for device in 1 2 3; do
        {
            echo "<configuration version='36'><folder id='keychain' label='keychain' path='$root/folder-$device' type='sendreceive'"
            echo "rescanIntervalS='5' fsWatcherEnabled='true' fsWatcherDelayS='1' ignorePerms='true'><filesystemType>basic</filesystemType>"
            printf "<device id='%s'/>\n" "${ids[@]}"
            echo "<disableTempIndexes>true</disableTempIndexes></folder>"
            for peer in 0 1 2; do
                echo "<device id='${ids[peer]}' name='$((peer + 1))' compression='never'><address>tcp://127.0.0.1:${ports[peer]}</address></device>"
            done
            echo "<gui enabled='false'/><options><listenAddress>tcp://127.0.0.1:${ports[device - 1]}</listenAddress>"
            echo "<globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>"
            echo "<relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><reconnectionIntervalS>1</reconnectionIntervalS>"
            echo "<startBrowser>false</startBrowser><urAccepted>-1</urAccepted><crashReportingEnabled>false</crashReportingEnabled>"
            echo "<stunKeepaliveStartS>0</stunKeepaliveStartS><autoUpgradeIntervalH>0</autoUpgradeIntervalH>"
            echo "<setLowPriority>false</setLowPriority></options></configuration>"
        } >"$root/syncthing-$device/config.xml"
    done
}

# Exchanges until killed; runs as a process of its own.
transport_loop() {
    local device=$1
    if [ "$transport" = etcd ]; then serve_etcd "$device"; fi
    if [ "$transport" = syncthing ]; then
        exec syncthing serve --no-browser --no-restart --no-upgrade --home="$root/syncthing-$device"
    fi
    while true; do
        "exchange_$transport" "$device"
        sleep 0.1
    done
}

# Each server has an address of its own on the loopback interface.
etcd_address() { echo "127.$etcd_network.$1"; }
etcd_members() { local number; for number in $(seq "$servers"); do "etcd_$1" "$number"; done | paste -sd,; }
etcd_endpoint() { echo "http://$(etcd_address "$1"):2379"; }
etcd_peer() { echo "n$1=http://$(etcd_address "$1"):2380"; }
etcd_control() { etcd_control_of "$(etcd_members endpoint)" "$@"; }
etcd_control_of() { ETCDCTL_API=3 timeout 60 etcdctl --endpoints "$@" 2>>"$root/etcdctl.log"; }

prepare_etcd() {
    etcd_network="$((1 + SRANDOM % 254)).$((1 + SRANDOM % 254))"
    echo "$servers $etcd_network 1" >"$root/etcd"
    printf 'etcd://%s/keychain?tls=off' "$(etcd_members address)" >"$root/location"
}

# Runs server $1 of the cluster that $root/etcd describes, with the data since the last restoration.
serve_etcd() {
    local generation
    read -r servers etcd_network generation <"$root/etcd"
    exec etcd --name "n$1" --data-dir "$root/etcd-$1-$generation" --initial-cluster "$(etcd_members peer)" \
        --listen-client-urls "$(etcd_endpoint "$1")" --advertise-client-urls "$(etcd_endpoint "$1")" \
        --listen-peer-urls "http://$(etcd_address "$1"):2380" --initial-advertise-peer-urls "http://$(etcd_address "$1"):2380" \
        --initial-cluster-token "$generation" --heartbeat-interval 50 --election-timeout 500 --quota-backend-bytes $((128 << 20)) --logger zap
}

await_etcd() {
    local deadline=$((SECONDS + 60))
    # Each server for itself, so that all of them are back.
    until etcd_control endpoint health >/dev/null; do
        [ $SECONDS -lt $deadline ] || { echo "$transport: the cluster is not healthy after a minute"; return 1; }
        sleep 0.1
    done
}

# What an operator does to the cluster, in turn. Agents and writers go on meanwhile.
operate_etcd() {
    local revision number
    await_etcd
    case $(($1 % 4)) in
        0)
            revision=$(etcd_control get --write-out json / | sed 's/.*"revision":\([0-9]*\).*/\1/')
            etcd_control compact "$revision" >/dev/null
            etcd_control defrag >/dev/null
            ;;
        1)
            # Uses up the quota, and gives the space back.
            head -c 1000000 /dev/zero >"$root/junk"
            for number in $(seq 200); do etcd_control put "/junk/$number" <"$root/junk" >/dev/null || break; done
            [ -n "$(etcd_control alarm list)" ] || { echo "$transport: the quota is not used up"; return 1; }
            pause 900
            etcd_control del --prefix /junk/ >/dev/null
            operate_etcd 0
            etcd_control alarm disarm >/dev/null
            fillings=$((fillings + 1))
            ;;
        2) rm -f "$root/snapshot"; etcd_control_of "$(etcd_endpoint 1)" snapshot save "$root/snapshot" >/dev/null ;;
        3) restore_etcd ;;
    esac
}

# Takes the cluster back to the last snapshot.
restore_etcd() {
    local number generation
    for number in $(seq "$servers"); do end "transport-$number"; done
    read -r _ _ generation <"$root/etcd"
    generation=$((generation + 1))
    echo "$servers $etcd_network $generation" >"$root/etcd"
    for number in $(seq "$servers"); do
        ETCDCTL_API=3 etcdctl snapshot restore "$root/snapshot" --name "n$number" --data-dir "$root/etcd-$number-$generation" \
            --initial-cluster "$(etcd_members peer)" --initial-cluster-token "$generation" \
            --initial-advertise-peer-urls "http://$(etcd_address "$number"):2380" >>"$root/etcdctl.log" 2>&1
        start_transport "$number"
    done
    restorations=$((restorations + 1))
    await_etcd
}

# MARK: Processes

# start KIND DEVICE COMMAND ...: starts a process group.
start() {
    local kind=$1 device=$2
    shift 2
    setsid "$@" >>"$root/$kind-$device.log" 2>&1 &
    pids[$kind-$device]=$!
}

start_agent() { start agent "$1" "$workload" agent "$root" "$1" "$seconds_ahead"; }
start_transport() { start transport "$1" "$script" --transport "$transport" "$root" "$1"; }
start_writer() { start writer "$1" "$workload" write "$root" "$1" "$seed" "$target"; }

is_running() { grep -qx "${pids[$1]}" <<<"$(jobs -rp)"; }

# A process that was just started has no group of its own yet.
signal() { if is_running "$2"; then kill "-$1" -- "-${pids[$2]}" || kill "-$1" "${pids[$2]}" || true; fi 2>/dev/null; }

# Kills a process. Only writers end without that.
end() {
    [ -n "${pids[$1]:-}" ] || return 0
    if ! is_running "$1" && [[ $1 != writer-* ]]; then
        echo "$transport: $1 has ended:"
        tail -n 3 "$root/$1.log"
        ended=1
    fi
    signal KILL "$1"
    # Bash reports killed processes on standard error.
    { wait "${pids[$1]}" || true; } 2>/dev/null
    unset "pids[$1]"
}

end_all() { for process in "${!pids[@]}"; do end "$process"; done; }

# The next number below $1 of the seed's sequence, in `number`; a subshell would not advance the sequence.
choose() { number=$((RANDOM % $1)); }

pause() { choose "$1"; sleep "$(printf '0.%03d' "$number")"; }

# Lets two days pass for the agents that start from now on. After an hour a device makes up for a lost batch by a checkpoint, and after a week
# the batches that a checkpoint covers are removed. The planted fault would not last either.
let_days_pass() { if ! $lose; then seconds_ahead=$((seconds_ahead + 172800)); fi; }

# Stops or kills one process, and continues it or starts it again.
strike() {
    local kind device process
    choose 5; kind=${kinds[number]}
    choose 3; device=$((number + 1))
    if [ "$transport" = etcd ] && [ "$kind" = transport ]; then device=$((number % servers + 1)); fi
    process=$kind-$device
    pause 400
    choose 2
    if [ "$number" -eq 0 ]; then
        kills=$((kills + 1))
        end "$process"
        pause 400
        if [ "$kind" = agent ]; then let_days_pass; fi
        "start_$kind" "$device"
    else
        stops=$((stops + 1))
        signal STOP "$process"
        pause 700
        signal CONT "$process"
    fi
}
kinds=(agent agent transport transport writer)

# MARK: The run

names() {
    if [ "$transport" = etcd ]; then
        etcd_control get --prefix --keys-only /keychain/keychain-sync-1/ | sed -n 's|^/keychain/keychain-sync-1/||p'
        return
    fi
    find "$1/keychain-sync-1" -type f ! -name '.*' -printf '%P\n' | sort
}
all_names() { for device in 1 2 3; do names "$root/folder-$device"; done; }
folders_are_equal() { cmp -s <(names "$root/folder-1") <(names "$root/folder-2") && cmp -s <(names "$root/folder-2") <(names "$root/folder-3"); }

# Moves everything to everywhere.
flush() {
    local device round deadline=$((SECONDS + 60))
    if [ "$transport" = etcd ]; then await_etcd; return; fi
    if [ "$transport" = syncthing ]; then
        until folders_are_equal; do
            [ $SECONDS -lt $deadline ] || { echo "$transport: the folders are still different after a minute"; return 1; }
            sleep 0.2
        done
        return
    fi
    for round in 1 2; do for device in 1 2 3; do "exchange_$transport" "$device" >>"$root/transport-$device.log" 2>&1; done; done
}

# Ends the processes, then lets each device synchronize in turn until nothing changes any more, also not on a later day.
settle() {
    local device before pass unchanged=0
    for device in 1 2 3; do
        end "agent-$device"
        [ "$transport" = syncthing ] || [ "$transport" = etcd ] || end "transport-$device"
    done
    flush
    for pass in {1..20}; do
        before=$(all_names | sha256sum)
        for device in 1 2 3; do "$workload" settle "$root" "$device" "$seconds_ahead" >>"$root/agent-$device.log" 2>&1; done
        flush
        if [ "$(all_names | sha256sum)" = "$before" ]; then unchanged=$((unchanged + 1)); else unchanged=0; fi
        if [ $unchanged -eq 2 ]; then return; fi
        let_days_pass
    done
    echo "$transport: the folders still change after 20 passes"
    return 1
}

# Removes the batch with the lowest number from all folders, behind the transport's back.
damage_folders() {
    local batch
    if [ "$transport" = etcd ]; then
        await_etcd
        batch=$(names | grep /b/ | sort -t / -k 5 | sed -n 1p)
        etcd_control del "/keychain/keychain-sync-1/$batch" >/dev/null
        return
    fi
    for device in 1 2 3; do end "transport-$device"; done
    batch=$(names "$root/folder-1" | grep /b/ | sort -t / -k 5 | sed -n 1p)
    rm -f "$root"/folder-?/keychain-sync-1/"$batch"
    for device in 1 2 3; do start_transport "$device"; done
}

# The planted fault: removes a batch of device 1 before any other device has got it.
lose_batch() {
    local batch
    for device in 1 2 3; do end "agent-$device"; end "transport-$device"; done
    touch "$root/before"
    "$workload" write "$root" 1 "$seed" $((target + 1))
    "$workload" settle "$root" 1 0
    batch=$(find "$root/folder-1/keychain-sync-1" -path '*/b/*' -type f -newer "$root/before" | sort | tail -n 1)
    rm "$batch"
    for device in 1 2 3; do start_agent "$device"; start_transport "$device"; done
}

run() {
    local transport=$1 round rounds=$((writes / 400 + 1)) device code=0 begin=$SECONDS kills=0 stops=0 ended=0 seconds_ahead=0 target
    local servers=3 etcd_network='' fillings=0 restorations=0
    local -A pids=()
    root=$directory/$transport
    mkdir "$root"
    trap end_all EXIT
    RANDOM=$seed
    "$workload" circle "$root"
    if $short; then servers=1; fi
    "prepare_$transport"
    # Folders need a transport each, and the servers of a cluster are one for all.
    [ "$transport" = etcd ] || servers=3
    for device in $(seq "$servers"); do start_transport "$device"; done
    for device in 1 2 3; do start_agent "$device"; done
    for ((round = 1; round <= rounds; round++)); do
        target=$((writes * round / rounds / 3 + 1))
        for device in 1 2 3; do start_writer "$device"; done
        strike
        if [ "$transport" = etcd ]; then operate_etcd $((round - 1)); fi
        strike; strike
        for device in 1 2 3; do
            wait "${pids[writer-$device]}" || { echo "$transport: a writer failed:"; tail -n 3 "$root/writer-$device.log"; exit 1; }
            unset "pids[writer-$device]"
        done
        if $lose; then
            if [ $round -eq $rounds ]; then lose_batch; fi
        elif [ $((round % 8)) -eq 4 ]; then
            damage_folders
        fi
    done
    settle || code=1
    if [ "$transport" = etcd ]; then echo "$transport: $servers servers, the quota was used up $fillings times, $restorations restorations"; fi
    echo "$transport, seed $seed: $kills kills, $stops stops, $(names "$root/folder-1" | grep -c /b/) batches and" \
        "$(names "$root/folder-1" | grep -c /c/) checkpoints at the end, $((SECONDS - begin)) s"
    end_all
    "$workload" compare "$root" || code=1
    exit $((code | ended))
}

self_test() {
    local output
    # Few enough for no checkpoint, which would have what is lost.
    if output=$("$script" --lose --writes 60 rsync); then
        printf '%s\nThe planted fault was not found.\n' "$output"
        return 1
    fi
    grep -q 'is lost on device' <<<"$output" || { printf '%s\nNo lost write was reported.\n' "$output"; return 1; }
    echo "The planted fault was found."
}

# The user's own settings have no effect.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

transports=() short=false seed=1 writes=10000 lose=false keep=false
while [ $# -gt 0 ]; do
    case $1 in
        # How this script starts itself.
        --transport) transport=$2 root=$3; transport_loop "$4" ;;
        --short) short=true writes=2400 ;;
        --seed) seed=${2:?}; shift ;;
        --writes) writes=${2:?}; shift ;;
        --lose) lose=true ;;
        --self-test) self_test; exit ;;
        --keep) keep=true ;;
        syncthing | git | rsync | etcd) transports+=("$1") ;;
        help | --help) usage; exit ;;
        *) usage >&2; exit 64 ;;
    esac
    shift
done
if $short && [ ${#transports[@]} -eq 0 ]; then
    transports=(rsync git)
    if command -v syncthing >/dev/null; then transports+=(syncthing); fi
fi
[ ${#transports[@]} -gt 0 ] || { usage >&2; exit 64; }

for transport in "${transports[@]}"; do
    if ! command -v "$transport" >/dev/null; then
        echo "$transport is missing: install the package $transport (on Debian: apt-get install ${transport/etcd/etcd-server etcd-client})." >&2
        exit 2
    fi
done

. Scripts/build-options.sh
if [[ " ${transports[*]} " == *" etcd "* ]]; then
    build_options[1]=.build/with-traits
    build_options+=(--enable-all-traits)
fi
swift build "${build_options[@]}" --product SyncWorkload >/dev/null
workload=$PWD/${build_options[1]}/release/SyncWorkload

directory=$(mktemp -d)
if $keep; then echo "$directory"; else trap 'rm -rf "$directory"' EXIT; fi
failed=0
for transport in "${transports[@]}"; do
    # A function in a condition would not end at the first command that fails.
    set +e
    (set -e; run "$transport")
    code=$?
    set -e
    if [ $code -ne 0 ]; then
        echo "$transport: failed with $code. With --keep, the logs stay."
        failed=1
    fi
done
exit $failed
