package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Main runs a program with the arguments of the command. If it fails, Main prints the error with the
// name, and ends the process with status 2.
func Main(name string, run func(args []string, stdout, stderr io.Writer) error) {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
}
