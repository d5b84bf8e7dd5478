package state

// rights are what docs/state.md says that the backend's user needs.
var rights = []string{
	"+hello", "+auth", "+ping", "+select", "+client|tracking",
	"+eval", "+set", "+get", "+getrange", "+del", "+pttl", "+pexpire", "+time", "+zadd", "+zrem", "+zrange", "+zremrangebyscore",
}
