// Package strictjson reads JSON in one pass, in place, and accepts nothing but RFC 8259
// nested no deeper than [MaxDepth]; where asked, only valid UTF-8 and no two members of
// one name in an object.
//
// It exists because a body is forwarded byte for byte: what another parser might read
// differently must be refused, and what nobody here needs must be skipped fast. It
// builds no values and keeps no text. The request judge and the stream gates call it:
//
//	s := strictjson.New(body, true)
//	s.Object(func(key strictjson.Text) {
//		if key.Is("model") {
//			model = s.Text().String()
//		} // what is left alone is skipped
//	})
//	if fault := s.End(); fault != nil {
//		return fault
//	}
//
// A lone surrogate escape such as \ud800 is accepted, since the grammar allows it, and
// counts as U+FFFD, which is what most parsers make of it.
package strictjson
