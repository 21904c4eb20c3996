package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine says where numbers come from: the processor, the version of this repository and
// that of Go.
func Machine() string {
	return fmt.Sprintf("Machine: %s. Version: %s.\n\n%s %s/%s, GOMAXPROCS %d",
		processor(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
}

// processor returns the name of the processor, if the system has a file with it.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, model, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown"
}

// commit is the commit of the working directory.
func commit() string {
	id, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(id))
}
