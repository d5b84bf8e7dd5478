//go:build !linux

package watch

import "log/slog"

// Set watches nothing on this system.
type Set struct{}

type registration struct{}

// New makes a set and says through the logger that it watches nothing.
func New(logger *slog.Logger) (*Set, error) {
	logger.Warn("cannot watch callers on this system; their leaving is found out at the next write; run on Linux to stop paying for callers who have gone")
	return &Set{}, nil
}

// Close does nothing.
func (*Set) Close() {}

func (*Set) add(c *Conn) { c.registration = registration{} }

func (*Set) remove(*Conn) {}
