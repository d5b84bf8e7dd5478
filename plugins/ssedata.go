package plugins

import "bytes"

// frameData returns the data of one raw frame: for server-sent events the text of its
// data lines, for other frames (a JSON line, a binary event as JSON) the frame itself.
// It is a view into frame, except for the rare frame with several data lines, which is
// joined with newlines up to what the JSON index reads.
func frameData(w *work, frame []byte) []byte {
	var data []byte
	lines := 0
	for rest := frame; len(rest) > 0; {
		var line []byte
		line, rest = cutLine(rest)
		w.spend(stepWork + len(line)/copyWork)
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		lines++
		switch {
		case lines == 1:
			data = value
			continue
		case len(data)+len(value) > maxJSONText:
			return data
		case lines == 2:
			data = bytes.Clone(data)
		}
		data = append(append(data, '\n'), value...)
	}
	switch {
	case lines > 0:
		return data
	case isComment(w, frame):
		return nil
	}
	return bytes.TrimSpace(frame)
}

// isComment says whether a frame holds nothing but SSE comments and fields that carry
// no data.
func isComment(w *work, frame []byte) bool {
	rest := frame
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		w.spend(stepWork + len(line)/copyWork)
		if len(line) == 0 || line[0] == ':' {
			continue
		}
		field, _, ok := bytes.Cut(line, []byte{':'})
		if !ok || string(field) != "event" && string(field) != "id" && string(field) != "retry" {
			return false
		}
	}
	return true
}

func cutLine(text []byte) (line, rest []byte) {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return bytes.TrimSuffix(text, []byte{'\r'}), nil
	}
	return bytes.TrimSuffix(text[:i], []byte{'\r'}), text[i+1:]
}
