package policies

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// clockFields are the question's time as a clock on the wall shows it, for wishes such as
// "at night only cheap channels". It is a fact like the others: a policy is asked anew
// only when the part that it reads has moved on.
func clockFields[Q any]() []field[Q] {
	return []field[Q]{
		{
			path: []string{"clock", "date"},
			key: func(b []byte, _ *Q, at time.Time) []byte {
				return binary.AppendVarint(b, int64(at.Year())*1000+int64(at.YearDay()))
			},
			value: func(_ *Q, at time.Time) *ast.Term { return ast.StringTerm(at.Format(time.DateOnly)) },
		},
		{
			path:  []string{"clock", "weekday"},
			key:   func(b []byte, _ *Q, at time.Time) []byte { return append(b, byte(at.Weekday())) },
			value: func(_ *Q, at time.Time) *ast.Term { return ast.StringTerm(strings.ToLower(at.Weekday().String())) },
		},
		{
			path:  []string{"clock", "hour"},
			key:   func(b []byte, _ *Q, at time.Time) []byte { return append(b, byte(at.Hour())) },
			value: func(_ *Q, at time.Time) *ast.Term { return ast.InternedTerm(at.Hour()) },
		},
		{
			path:  []string{"clock", "minute"},
			key:   func(b []byte, _ *Q, at time.Time) []byte { return append(b, byte(at.Minute())) },
			value: func(_ *Q, at time.Time) *ast.Term { return ast.InternedTerm(at.Minute()) },
		},
	}
}
