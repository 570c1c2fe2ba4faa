package main

import (
	"errors"
	"fmt"
	"strconv"
)

func tetherArguments(arguments []string) (parent int, command []string, err error) {
	if len(arguments) < 2 {
		return 0, nil, errors.New("usage: tether PARENT_PID PROGRAM [ARGUMENT...]")
	}
	parent, err = strconv.Atoi(arguments[0])
	if err != nil {
		return 0, nil, fmt.Errorf("the parent's process id %q is not a number", arguments[0])
	}
	return parent, arguments[1:], nil
}
