package results

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Machine is where and with what figures were taken.
type Machine struct {
	CPU        string   `json:"cpu"`
	CPUs       int      `json:"cpus"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	System     string   `json:"system"`
	Kernel     string   `json:"kernel"`
	Go         string   `json:"go"`
	Redis      string   `json:"redis"`
	Libraries  []string `json:"libraries"`
	Load       float64  `json:"load_before"`
	Date       string   `json:"date"`
	Command    string   `json:"command"`
}

// Describe describes this machine as it is now. redis is the version of the
// server, command what the reader runs in bench/ to get such figures.
func Describe(redis, command string) Machine {
	return Machine{
		CPU:        cpuModel(),
		CPUs:       runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		System:     runtime.GOOS + "/" + runtime.GOARCH,
		Kernel:     firstLine("/proc/sys/kernel/osrelease"),
		Go:         runtime.Version(),
		Redis:      redis,
		Libraries:  libraries(),
		Load:       load(),
		Date:       time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		Command:    command,
	}
}

// Lines tells it to people.
func (m Machine) Lines() []string {
	return []string{
		fmt.Sprintf("Machine: %s, %d cores (GOMAXPROCS %d), %s, kernel %s", m.CPU, m.CPUs, m.GOMAXPROCS, m.System, m.Kernel),
		m.server(),
		"Client: " + strings.Join(append([]string{m.Go}, m.Libraries...), ", "),
		fmt.Sprintf("Taken %s, load before %.2f, with: cd bench && %s", m.Date, m.Load, m.Command),
	}
}

// server says where the server is; Redis is "" where it is another one.
func (m Machine) server() string {
	if m.Redis == "" {
		return "Servers on the same machine, loopback"
	}
	return fmt.Sprintf("Server: Redis %s on the same machine, loopback TCP, nothing saved", m.Redis)
}

// unknown stands for what a system does not tell.
const unknown = "unknown"

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// load is the mean number of processes that wanted to run in the last minute;
// 0 where the system does not tell.
func load() float64 {
	text, _, _ := strings.Cut(firstLine("/proc/loadavg"), " ")
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return x
}

// libraries are the versions that were built in.
func libraries() []string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{unknown}
	}
	var list []string
	for _, m := range build.Deps {
		switch m.Path {
		case "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
			"github.com/bsm/redislock", "github.com/redis/rueidis":
			list = append(list, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return list
}
