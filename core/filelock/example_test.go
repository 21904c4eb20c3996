package filelock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ephemeralgo/ephemeral/core/filelock"
)

func ExampleLock() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	lock, err := filelock.Open(filepath.Join(dir, "app.lock"))
	if err != nil {
		panic(err)
	}
	defer lock.Close()

	release, err := lock.Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("no other process is here")
	release()
	// Output: no other process is here
}
