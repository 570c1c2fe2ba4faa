//go:build !linux

package main

import (
	"os"
	"syscall"
)

// runTethered becomes the program in arguments[1:]. Only Linux can end it with its parent; elsewhere the Python
// side's own clean-up has to do.
func runTethered(arguments []string) error {
	_, command, err := tetherArguments(arguments)
	if err != nil {
		return err
	}
	return syscall.Exec(command[0], command, os.Environ())
}
