package main

import (
	"bytes"
	"crypto/sha256"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must rest before they are read: editors and Kubernetes write
// in several steps.
const settle = 200 * time.Millisecond

// watchFiles tells of changes to the content of files, and of what is below those that are
// directories. It watches directories, since a file is often replaced rather than written.
// A change that leaves the content as it was, which last is the digest of, says nothing.
// Where watching isn't possible it says so and stays silent: SIGHUP works everywhere. stop
// ends it and waits.
func watchFiles(files []string, last []byte, logger *slog.Logger) (changes <-chan struct{}, stop func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("cannot watch the configuration's files; send SIGHUP to reload", "error", err)
		return nil, func() {}
	}
	for _, dir := range directories(files) {
		if err := w.Add(dir); err != nil {
			logger.Warn("cannot watch the configuration's files; send SIGHUP to reload", "error", err)
		}
	}
	out, done := make(chan struct{}), make(chan struct{})
	quit := make(chan struct{})
	go func() {
		defer close(done)
		tellChanges(w, files, last, out, quit)
	}()
	return out, func() {
		close(quit)
		_ = w.Close() // its descriptors are freed; nothing is lost
		<-done
	}
}

func tellChanges(w *fsnotify.Watcher, files []string, last []byte, out chan<- struct{}, quit <-chan struct{}) {
	rest := time.NewTimer(settle)
	for {
		select {
		case <-quit:
			return
		case event, open := <-w.Events:
			if !open {
				return
			}
			// The ledger is often beside the configuration, and is written all the time.
			if concerns(files, event.Name) {
				rest.Reset(settle)
			}
		case _, open := <-w.Errors:
			if !open {
				return
			}
		case <-rest.C:
			now := digest(files)
			if bytes.Equal(now, last) {
				continue
			}
			last = now
			select {
			case out <- struct{}{}:
			case <-quit:
				return
			}
		}
	}
}

// concerns says whether a change at path can change the content of files, or of what is
// below those that are directories. Kubernetes changes a file by way of a link beside it
// whose name begins with two dots.
func concerns(files []string, path string) bool {
	path = filepath.Clean(path)
	return strings.HasPrefix(filepath.Base(path), "..") || slices.ContainsFunc(files, func(f string) bool {
		f = filepath.Clean(f)
		return path == f || strings.HasPrefix(path, f+string(filepath.Separator))
	})
}

// directories are those that files stand in, and all below those that are directories.
func directories(files []string) []string {
	var dirs []string
	for _, f := range files {
		dirs = append(dirs, filepath.Dir(f))
		_ = filepath.WalkDir(f, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // what can't be read is reported by whoever loads it
		})
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// digest is a hash of the contents of files and of what is below those that are
// directories; what can't be read counts as empty.
func digest(files []string) []byte {
	h := sha256.New()
	for _, f := range files {
		_ = filepath.WalkDir(f, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			content, _ := os.ReadFile(path)
			sum := sha256.Sum256(content)
			_, _ = io.WriteString(h, path)
			_, _ = h.Write(sum[:])
			return nil
		})
	}
	return h.Sum(nil)
}
