package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newFile is a file of a new policy or plugin; its name has slashes.
type newFile = struct {
	Name    string
	Content []byte
	Mode    fs.FileMode
}

// errNoName is of a name that an unset variable of a script has left empty.
var errNoName = usageError{errors.New("the name is empty; write that of the new directory")}

// writeNew writes the files of something new. It touches no directory that has something
// in it.
func writeNew[F ~newFile](dir string, files []F) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("the directory %q is not empty; choose another name", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	for _, file := range files {
		f := newFile(file)
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, f.Mode); err != nil {
			return err
		}
	}
	return nil
}
