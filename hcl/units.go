package hcl

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sizeUnits are the suffixes of a size, the longer ones first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// parseSize reads a whole number of bytes with its unit, such as "32MiB".
func parseSize(text string) (int64, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 62)
		if err != nil || int64(n) > (1<<62)/unit.bytes {
			break
		}
		return int64(n) * unit.bytes, nil
	}
	return 0, fmt.Errorf(`cannot read size %s: write a whole number and B, KiB, MiB or GiB, such as "32MiB"`, bounded(text))
}

// parseDuration reads a duration such as "1m30s".
func parseDuration(text string) (time.Duration, error) {
	v, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf(`cannot read duration %s: write numbers with ms, s, m or h, such as "30s" or "1m30s" (a day is "24h")`, bounded(text))
	}
	return v, nil
}

// formatSize writes a size in the largest unit that fits it exactly.
func formatSize(n int64) string {
	for _, unit := range sizeUnits[:3] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// formatDuration writes a duration without its zero parts: "24h", not "24h0m0s".
func formatDuration(v time.Duration) string {
	text := v.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}
