package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must rest before they are read: editors and Kubernetes write
// in several steps.
const settle = 200 * time.Millisecond

// watchFiles tells of changes to what was read, also of those since then. It watches
// directories, since a file is often replaced rather than written. A change that leaves the
// contents as they were says nothing. Where watching isn't possible it says so and stays
// silent: SIGHUP works everywhere. stop ends it and waits.
func watchFiles(read reading, logger *slog.Logger) (changes <-chan struct{}, stop func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn(cannotWatch, "error", err)
		return nil, func() {}
	}
	f := &fileWatch{watcher: w, read: read, logger: logger, out: make(chan struct{}), quit: make(chan struct{})}
	f.look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run()
	}()
	return f.out, func() {
		close(f.quit)
		_ = w.Close() // its descriptors are freed; nothing is lost
		<-done
	}
}

const cannotWatch = "cannot watch the configuration's files; send SIGHUP to reload"

// fileWatch is a watch whose goroutine runs.
type fileWatch struct {
	watcher *fsnotify.Watcher
	read    reading // the contents are those that were told of
	places  places
	logger  *slog.Logger
	warned  bool
	out     chan struct{}
	quit    chan struct{}
}

// look watches the directories in which the inputs are by now: there are new ones, and
// links that lead elsewhere.
func (f *fileWatch) look() {
	f.places = f.read.inputs.places()
	for _, dir := range f.watcher.WatchList() {
		if !slices.Contains(f.places.dirs, dir) {
			_ = f.watcher.Remove(dir) // it is gone anyway, if this fails
		}
	}
	for _, dir := range f.places.dirs {
		if err := f.watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !f.warned {
			f.warned = true
			f.logger.Warn(cannotWatch, "error", err)
		}
	}
}

func (f *fileWatch) run() {
	rest := time.NewTimer(settle)
	for {
		select {
		case <-f.quit:
			return
		case event, open := <-f.watcher.Events:
			if !open {
				return
			}
			if f.places.concerned(event.Name) {
				rest.Reset(settle)
			}
		case _, open := <-f.watcher.Errors:
			if !open {
				return
			}
			rest.Reset(settle) // events may be lost
		case <-rest.C:
			f.look() // first, so that no change after the next line goes by unseen
			now := f.read.inputs.now()
			if maps.Equal(now, f.read.contents) {
				continue
			}
			f.read.contents = now
			select {
			case f.out <- struct{}{}:
			case <-f.quit:
				return
			}
		}
	}
}
