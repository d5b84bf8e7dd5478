// Package starter writes the beginning of a classifier plugin: source, build file, corpus
// and README in one of four languages, with Fourgate's functions for that language beside
// them. It also knows how each language is built.
//
// It runs nothing: cmd/fourgate runs the toolchains.
//
//	lang, err := starter.Lookup("rust")
//	if err != nil { … }
//	files, err := lang.Files("acme")
//	if err != nil { … }
//	for _, f := range files { write(f.Name, f.Content, f.Mode) }
package starter
