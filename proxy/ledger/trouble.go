package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// marks are what tells a ledger from other files.
type marks struct {
	applicationID, version, tables int64
}

// empty says whether the file is new.
func (m marks) empty() bool { return m.applicationID == 0 && m.version == 0 && m.tables == 0 }

// errEmpty is what a reader finds, and the others are what check does.
var (
	errEmpty   = errors.New("it is empty")
	errForeign = errors.New("it is a database of another application")
	errNewer   = errors.New("a newer Fourgate has written it")
)

// check says whether this version can use the file's tables.
func (m marks) check() error {
	if m.applicationID != applicationID {
		return errForeign
	}
	if m.version > schemaVersion {
		return fmt.Errorf("%w (schema %d, this one knows %d)", errNewer, m.version, schemaVersion)
	}
	return nil
}

// explain makes one line of what went wrong with a file and how to mend it.
func explain(verb, path string, err error) error {
	return fmt.Errorf("cannot %s ledger %q: %w; %s", verb, path, err, remedy(path, err))
}

func remedy(path string, err error) string {
	switch {
	case errors.Is(err, errEmpty):
		return "`fourgate serve` makes its tables when it starts; name the file that it writes to"
	case errors.Is(err, errForeign):
		return "set another path in the ledger block"
	case errors.Is(err, errNewer):
		return "upgrade Fourgate or set another path in the ledger block"
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return "check the path in the ledger block"
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CANTOPEN:
		return remedyForPath(path)
	case sqlite3.SQLITE_NOTADB:
		return "the file is no SQLite database: set another path in the ledger block"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another process holds its lock: end that process or its transaction"
	case sqlite3.SQLITE_FULL:
		return "free some disk space or shorten the retention in the ledger block"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "let this user write the file and its directory"
	case sqlite3.SQLITE_CORRUPT:
		return "the file is damaged: move it away (sqlite3 can .recover it) and a new one will be made"
	case sqlite3.SQLITE_IOERR:
		return "check the disk and the system's log"
	}
	return "check the file and its disk"
}

// cannotShare says whether SQLite failed to make the files beside the database.
func cannotShare(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// remedyForPath finds out why SQLite could not open a path, which it doesn't say.
func remedyForPath(path string) string {
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("the directory %q doesn't exist: create it", dir)
	case err != nil:
		return fmt.Sprintf("the directory %q can't be used: %v", dir, err)
	case !info.IsDir():
		return fmt.Sprintf("%q is no directory: set another path in the ledger block", dir)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "it is a directory: set the path of a file in the ledger block"
	}
	return "let this user write the file and its directory"
}
