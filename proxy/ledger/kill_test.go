package ledger

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// victimPath tells the test binary to be the process that is killed.
const victimPath = "FOURGATE_TEST_LEDGER_VICTIM"

const (
	victimDone    = 700 // requests that are over and written
	victimRunning = victimDone
	victimLost    = 50 // requests in the batch that dies
)

// victim writes to a ledger, says so and waits to be killed.
func victim(path string) {
	s, err := Open(Options{Path: path})
	if err != nil {
		fmt.Println(err)
		return
	}
	t := &testing.T{}
	for i := range victimDone {
		s.Closed(success(t, i))
	}
	s.Opened(record(t, victimRunning, "", failedAttempt(1, "openai", "unknown"), openAttempt(2, "azure-east")))
	if err := s.Flush(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for i := range victimLost {
		s.Closed(success(t, victimRunning+1+i))
	}
	fmt.Println("written")
	time.Sleep(time.Minute) // the parent kills long before
}

func TestKillLosesNoMoreThanTheBatchInFlight(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/fourgate.db"
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), victimPath+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed: that is its only news
	if err != nil || strings.TrimSpace(line) != "written" {
		t.Fatalf("the process said %q, %v", line, err)
	}

	got := make(map[string]bool)
	for _, id := range idsOf(t, path) {
		got[id] = true
	}
	for i := range victimDone {
		if !got[requestID(i)] {
			t.Fatalf("record %d of %d is lost although it was written", i, victimDone)
		}
	}
	if n := len(got) - victimDone - 1; n < 0 || n > victimLost {
		t.Errorf("%d more records than were written before", n)
	}

	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec, err := r.Get(t.Context(), requestID(victimRunning))
	if err != nil {
		t.Fatal(err)
	}
	last := rec.Attempts()[len(rec.Attempts())-1]
	if rec.Terminal() != engine.TerminalNone || last.Ended() || last.Channel() != "azure-east" {
		t.Errorf("the attempt in flight reads as %s", rec.AppendJSON(nil))
	}

	// The next process finds the file as it is and goes on.
	b := openStore(t, Options{Path: path}, seams{})
	b.Closed(success(t, 10_000))
	b.close()
}
