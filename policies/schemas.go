package policies

import "io/fs"

// Schemas returns the JSON schemas of questions and answers by their file names, such as
// input.jsonschema. They ship beside a new policy, for the opa command and for editors.
func Schemas() map[string][]byte {
	names, err := fs.Glob(embedded, "*.jsonschema")
	if err != nil || len(names) == 0 {
		panic("BUG: the embedded policy has no schemas")
	}
	schemas := map[string][]byte{}
	for _, name := range names {
		text, err := embedded.ReadFile(name)
		if err != nil {
			panic("BUG: the embedded policy has no " + name)
		}
		schemas[name] = text
	}
	return schemas
}
