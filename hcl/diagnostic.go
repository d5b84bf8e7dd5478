package hcl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// Severity says whether a configuration with this diagnostic can be used.
type Severity uint8

// The severities. The zero value is the one that stops.
const (
	Error Severity = iota
	Warning
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// MarshalText writes "error" or "warning".
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is one thing that is wrong with a configuration.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"` // what, in under ten words
	Detail   string   `json:"detail"`  // why it matters and what to write instead
	File     string   `json:"file,omitempty"`
	// Line and Column count from 1; both are 0 when no place can be named. Columns
	// count characters as a reader sees them.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`

	place  *hcl2.Range
	source *hcl2.File // with its secrets masked
}

// String is one line for a log: place, severity, summary and detail, never source.
func (d Diagnostic) String() string {
	text := fmt.Sprintf("%s: %s; %s", d.Severity, d.Summary, d.Detail)
	if d.File == "" {
		return text
	}
	if d.Line == 0 {
		return d.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, text)
}

// Diagnostics are all the diagnostics of one run, by file, line and column.
type Diagnostics []Diagnostic

// HasErrors says whether any diagnostic stops.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Count returns the number of errors and of warnings.
func (ds Diagnostics) Count() (errors, warnings int) {
	for _, d := range ds {
		if d.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// Sort brings diagnostics into the order in which a person mends them: by file, line and
// column.
func (ds Diagnostics) Sort() {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity),
			strings.Compare(a.Summary, b.Summary),
		)
	})
}

// diagnosticAt makes a diagnostic with a place in a file.
func diagnosticAt(sev Severity, place hcl2.Range, summary, detail string) Diagnostic {
	return Diagnostic{
		Severity: sev, Summary: summary, Detail: detail,
		File: place.Filename, Line: place.Start.Line, Column: place.Start.Column,
		place: &place,
	}
}

// translate takes over a diagnostic of the HCL library: its words and its place, but
// not the expression, whose values the library would print.
func translate(d *hcl2.Diagnostic) Diagnostic {
	sev := Error
	if d.Severity == hcl2.DiagWarning {
		sev = Warning
	}
	if d.Subject == nil {
		return Diagnostic{Severity: sev, Summary: d.Summary, Detail: d.Detail}
	}
	return diagnosticAt(sev, *d.Subject, d.Summary, d.Detail)
}
