package hcl

import (
	"bytes"
	"fmt"
	"io"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// noSource is what the HCL library draws behind a place whose source it doesn't have.
const noSource = ":\n  (source code not available)\n"

// withColumn adds the column to the place that the library has drawn as file and line.
func withColumn(drawn []byte, d *Diagnostic) []byte {
	if d.Line == 0 || d.Column == 0 {
		return drawn
	}
	line := fmt.Sprintf("  on %s line %d", d.File, d.Line)
	return bytes.Replace(drawn, []byte(line), fmt.Appendf(nil, "%s, column %d", line, d.Column), 1)
}

// WriteDiagnostics draws diagnostics for a person: severity and summary, the place with
// its source line, if there is one, then the detail wrapped at width columns (0 doesn't
// wrap). Whatever stands where a secret belongs is drawn as three stars.
func WriteDiagnostics(w io.Writer, diags Diagnostics, color bool, width int) error {
	var out bytes.Buffer
	for _, d := range diags {
		var one bytes.Buffer
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
		writer := hcl2.NewDiagnosticTextWriter(&one, files, uint(max(width, 0)), color)
		err := writer.WriteDiagnostic(&hcl2.Diagnostic{
			Severity: severity, Summary: d.Summary, Detail: detail, Subject: subject,
		})
		if err != nil {
			return fmt.Errorf("cannot write diagnostics: %w", err)
		}
		drawn := one.Bytes()
		if d.source == nil { // the place says enough without the library's regret
			drawn = bytes.Replace(drawn, []byte(noSource), []byte(":\n"), 1)
		}
		out.Write(withColumn(drawn, &d))
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
