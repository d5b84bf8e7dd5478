// Package starter writes the beginning of a policy: a rule that decides one case and leaves
// the others to an embedded policy, its tests, the schemas of question and answers, and a
// README with the commands that come next.
//
// It writes to no disk: cmd/fourgate does.
//
//	files, err := starter.Files("acme", "acme", "")
//	if err != nil { … }
//	for _, f := range files { write(f.Name, f.Content, f.Mode) }
package starter
