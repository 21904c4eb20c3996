package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// docHead is the text before the table in a document.
func docHead(args []string) string {
	return fmt.Sprintf(`# Numbers

Times of the library beside those of other libraries, all on one machine, in turns. Only ratios mean something: 0.5 is half the
time of the other side, and 2 is twice its time. [bench/README.md](../bench/README.md) says what each row measures and what is
fair. A program writes this file; run it again for your machine:

`+"```sh\ngo run ./bench/compare %s\n```"+`

Machine: %s. Version: %s.

`, strings.Join(args, " "), processor(), commit())
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
