package proxy

import (
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// maxID bounds a request id that a caller chose, as it goes upstream and into the
// ledger.
const maxID = 128

// saneID says whether a caller's own X-Request-Id is accepted: 1 to 128 letters,
// digits, dots, underscores and hyphens.
func saneID(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// crockford is the alphabet of ULIDs: no I, L, O or U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newID makes a request id in the form of a ULID: 48 bits of milliseconds and 80
// random bits, so that ids sort by time.
func newID(now time.Time, r engine.Rand) string {
	var id [26]byte
	putBase32(id[:10], uint64(now.UnixMilli()))
	putBase32(id[10:18], random40(r))
	putBase32(id[18:], random40(r))
	return string(id[:])
}

// random40 takes 40 of the 53 random bits of a float.
func random40(r engine.Rand) uint64 { return uint64(r.Float64() * (1 << 40)) }

func putBase32(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = crockford[v&31]
		v >>= 5
	}
}
