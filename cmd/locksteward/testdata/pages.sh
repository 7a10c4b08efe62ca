# What the commands of pages find in bash: redis-cli reaches the server $R and fails on errors, and each command has the token of a person who may run it, if it names no other.
redis-cli() {
	case " $* " in
	*" -p "*) command redis-cli -e "$@" ;;
	*) command redis-cli -e -p "${R##*:}" "$@" ;;
	esac
}
locksteward() {
	case "$1 $2" in
	"release request") LOCKSTEWARD_TOKEN=${LOCKSTEWARD_TOKEN:-$REQUESTER} command locksteward "$@" ;;
	*) LOCKSTEWARD_TOKEN=${LOCKSTEWARD_TOKEN:-$OTHER} command locksteward "$@" ;;
	esac
}
