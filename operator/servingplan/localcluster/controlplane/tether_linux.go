package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// runTethered becomes the program in arguments[1:], which the kernel kills when its parent, process arguments[0], ends.
func runTethered(arguments []string) error {
	parent, command, err := tetherArguments(arguments)
	if err != nil {
		return err
	}
	// The signal belongs to the thread that asks for it: this same thread has to become the program.
	runtime.LockOSThread()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("asking for a signal at the parent's death: %w", errno)
	}
	// It may have died before the kernel was asked; then somebody else is the parent by now.
	if os.Getppid() != parent {
		return fmt.Errorf("the parent, process %d, is gone", parent)
	}
	return syscall.Exec(command[0], command, os.Environ())
}
