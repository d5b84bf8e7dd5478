package hcl

import (
	"bytes"
	"fmt"
	"io"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// WriteDiagnostics draws diagnostics for a person: severity and summary, the place with
// its source line, then the detail wrapped at width columns (0 doesn't wrap). Whatever
// stands where a secret belongs is drawn as three stars.
func WriteDiagnostics(w io.Writer, diags Diagnostics, color bool, width int) error {
	var out bytes.Buffer
	for _, d := range diags {
		files := map[string]*hcl2.File{}
		if d.source != nil {
			files[d.File] = d.source
		}
		severity := hcl2.DiagError
		if d.Severity == Warning {
			severity = hcl2.DiagWarning
		}
		detail, subject := d.Detail, d.place
		switch {
		case subject != nil || d.File == "":
		case d.Line > 0: // made by somebody else, about a file of theirs
			at := hcl2.Pos{Line: d.Line, Column: max(d.Column, 1)}
			subject = &hcl2.Range{Filename: d.File, Start: at, End: at}
		default:
			detail = "On " + d.File + ": " + detail
		}
		writer := hcl2.NewDiagnosticTextWriter(&out, files, uint(max(width, 0)), color)
		err := writer.WriteDiagnostic(&hcl2.Diagnostic{
			Severity: severity, Summary: d.Summary, Detail: detail, Subject: subject,
		})
		if err != nil {
			return fmt.Errorf("cannot write diagnostics: %w", err)
		}
	}
	// A masked line is padded so that columns stay true; the padding ends here.
	lines := bytes.Split(out.Bytes(), []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " \t\r")
	}
	if _, err := w.Write(bytes.Join(lines, []byte("\n"))); err != nil {
		return fmt.Errorf("cannot write diagnostics: %w", err)
	}
	return nil
}
