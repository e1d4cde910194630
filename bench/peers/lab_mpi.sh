#!/bin/sh
# SPDX-License-Identifier: MIT
# In the lab: a program of Open MPI's or MPICH's with a rank on each of its hosts, over their cards. For
# these each host is a name of its own, and `ip netns exec` is what ssh would be.
#
#	gridcoll lab run GRID -- bench/peers/lab_mpi.sh openmpi|mpich PROGRAM [ARGUMENT...]
set -eu
mpi=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/agent" <<'END'
#!/bin/sh
while :; do
	case $1 in
	-*) shift ;;
	*) break ;;
	esac
done
host=$1
shift
exec unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$host" ip netns exec "gcl-$host" sh -c "$*"
END
chmod 755 "$work/agent"
# As gridcoll has them: the grid's order, which is that of addresses.
hosts=$(awk '$1 ~ /^10\./ { print $2 }' /etc/hosts | paste -sd,)
first=${hosts%%,*}
n=$(echo "$hosts" | tr , '\n' | wc -l)
case $mpi in
openmpi)
	set -- env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi \
		--mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 -H "$hosts" -n "$n" --bind-to none \
		--mca oob_tcp_if_include eth0 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth0 \
		--mca mpi_yield_when_idle 1 "$@"
	;;
mpich)
	set -- env UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MPIR_CVAR_NOLOCAL=1 mpiexec.mpich -launcher ssh \
		-launcher-exec "$work/agent" -localhost "$first" -hosts "$hosts" -n "$n" "$@"
	;;
*)
	echo "lab_mpi.sh: $mpi, expected openmpi or mpich" >&2
	exit 2
	;;
esac
unshare --uts sh -c 'hostname "$1"; shift; exec ip netns exec "gcl-$@"' sh "$first" "$first" "$@"
