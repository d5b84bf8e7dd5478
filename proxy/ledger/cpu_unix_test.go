//go:build unix

package ledger

import "syscall"

// processCPU returns the CPU time of all threads in nanoseconds.
func processCPU() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
