// Command controlplane holds every Kubernetes component of a local cluster in one program.
//
// The first argument, or the name that the program is called by, says which one runs: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet, kube-proxy or kubectl. One link of all of them takes a third
// of the disk and of the time that seven programs would. Two more names serve the Python side: "pki" writes the
// keys and certificates of a new cluster, "tether" runs a program that ends together with its parent.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// cobraComponents are built only when they run: building one registers flags and metrics globally.
var cobraComponents = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": kcm.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

// plainComponents take their arguments, without their name, and return when they have nothing left to do.
var plainComponents = map[string]func(arguments []string) error{
	"pki":    writePKI,
	"tether": runTethered,
}

func names() []string {
	all := []string{"etcd"}
	for name := range cobraComponents {
		all = append(all, name)
	}
	for name := range plainComponents {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func main() {
	name := filepath.Base(os.Args[0])
	if !slices.Contains(names(), name) && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if build, known := cobraComponents[name]; known {
		os.Exit(cli.Run(build()))
	}
	run, known := plainComponents[name]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown component %q: one of %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
