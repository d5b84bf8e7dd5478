package hcl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"unicode/utf8"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// The bounds of a source that somebody else's diagnostic is about, in bytes: a file
// beyond them is not what a person has written.
const (
	maxSourceBytes = 1 << 20
	maxSourceLine  = 1000
)

// Illustrate gives diagnostics that were made elsewhere, with nothing but a file, a line
// and a column, the source line of that file. One whose file can't be read stays without.
// Rego has no secrets of ours; any other file is masked as a configuration is.
func (ds Diagnostics) Illustrate(env Environment) {
	read := map[string][]byte{}
	for i := range ds {
		d := &ds[i]
		if d.place != nil || d.source != nil || d.File == "" || d.Line < 1 {
			continue
		}
		src, known := read[d.File]
		if !known {
			var err error
			if src, err = env.readSource(d.File); err != nil {
				src = nil
			} else if filepath.Ext(d.File) != ".rego" {
				src = mask(src)
			}
			read[d.File] = src
		}
		if at, ok := placeIn(src, d.Line, d.Column); ok {
			at.Filename = d.File
			d.place, d.source = &at, &hcl2.File{Bytes: src}
		}
	}
}

// readSource reads a regular file of at most maxSourceBytes.
func (e Environment) readSource(path string) ([]byte, error) {
	if e.ReadFile == nil {
		switch info, err := os.Stat(path); {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular() || info.Size() > maxSourceBytes:
			return nil, errNoSource
		}
	}
	src, err := e.readFile(path)
	if err == nil && len(src) > maxSourceBytes {
		err = errNoSource
	}
	return src, err
}

// errNoSource stands for a file that nobody has written by hand.
var errNoSource = errors.New("it is a device, or too large")

// placeIn finds the word at a line and a column of a source.
func placeIn(src []byte, line, column int) (hcl2.Range, bool) {
	start := 0
	for n := 1; n < line; n++ {
		end := lineEnd(src, start)
		if end == len(src) {
			return hcl2.Range{}, false
		}
		start = end + 1
	}
	text := bytes.TrimRight(src[start:lineEnd(src, start)], "\r")
	if len(bytes.TrimSpace(text)) == 0 || len(text) > maxSourceLine || !utf8.Valid(text) {
		return hcl2.Range{}, false
	}
	at := hcl2.Pos{Line: line, Column: 1, Byte: start}
	for at.Column < column && at.Byte < start+len(text) {
		_, size := utf8.DecodeRune(src[at.Byte:])
		at.Byte += size
		at.Column++
	}
	end := at
	for end.Byte < start+len(text) && isWordByte(src[end.Byte]) {
		end.Byte++
		end.Column++
	}
	if end == at {
		end.Byte++ // a sign; the end of the line is one, too
		end.Column++
	}
	return hcl2.Range{Start: at, End: end}, true
}
