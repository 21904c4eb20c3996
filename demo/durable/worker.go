package main

import (
	"fmt"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"io"
	"os"
	"os/exec"
)

// A worker is a process that runs items.
type worker struct {
	at, name string
	stderr   io.Writer
	cmd      *exec.Cmd
	alive    io.Closer // its standard input
}

func startWorker(at, name string, stderr io.Writer) (*worker, error) {
	w := &worker{at: at, name: name, stderr: stderr}
	return w, w.start()
}

func (w *worker) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.cmd = exec.Command(self, "-worker", w.name, "-at", w.at)
	w.cmd.Stderr = w.stderr
	if w.alive, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	return w.cmd.Start()
}

// killAndRestart kills the process in the middle of its work, and starts a new one.
func (w *worker) killAndRestart() error {
	w.cmd.Process.Kill()
	if err := w.end(); err != nil {
		return err
	}
	return w.start()
}

// end lets the process finish its running work, and waits for the end of the process.
func (w *worker) end() error {
	w.alive.Close()
	if w.cmd.ProcessState == nil {
		w.cmd.Wait() // an end by a signal is no failure
	}
	if w.cmd.ProcessState.ExitCode() == program.Unusable {
		return fmt.Errorf("%s has ended by itself", w.name)
	}
	return nil
}
