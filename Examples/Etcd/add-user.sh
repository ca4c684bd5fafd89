#!/usr/bin/env bash
# Gives a device its own user of etcd, with the permissions of its role in the circle:
#
#     add-user.sh /fleet admin-1 writer
#     add-user.sh /fleet web reader
#
# /fleet is the path of the location (etcd://…/fleet). The user has no password: it is named by the common name (CN) of a client certificate,
# so the servers of the cluster run with --client-cert-auth. A reader may add objects only while it joins: `joining` permits it, and
# `reader` afterwards takes the permission back.
#
# The environment tells etcdctl where the cluster is and who you are: ETCDCTL_ENDPOINTS, ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY. Nothing is
# enforced before `etcdctl auth enable`, which needs a user `root` with the role `root`.
set -euo pipefail

if [ $# -ne 3 ] || [[ $1 != /* ]] || ! [[ $3 =~ ^(reader|joining|writer)$ ]]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 64
fi
export ETCDCTL_API=3
keys=${1%/}/keychain-sync-1/ user=$2 access=readwrite
[ "$3" = writer ] || access=read
role=keychain-$user

etcdctl role get "$role" >/dev/null 2>&1 || etcdctl role add "$role"
etcdctl role grant-permission --prefix "$role" "$access" "$keys"
# Invitations are below the circle.
circles=$(etcdctl get --prefix --keys-only "$keys" | sed -n "s|^$keys\([0-9a-f]\{32\}\)/.*|\1|p" | sort -u)
for circle in $circles; do
    if [ "$3" = joining ]; then
        etcdctl role grant-permission --prefix "$role" readwrite "$keys$circle/j/"
    else
        etcdctl role revoke-permission --prefix "$role" "$keys$circle/j/" 2>/dev/null || true
    fi
done
etcdctl user get "$user" >/dev/null 2>&1 || etcdctl user add --no-password "$user"
etcdctl user grant-role "$user" "$role"
