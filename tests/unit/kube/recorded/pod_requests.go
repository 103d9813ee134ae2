//go:build ignore

// Writes down what the scheduler of Kubernetes counts of the pods in pod_requests.json, into the same file:
//
//	go mod init recorder
//	go get k8s.io/component-helpers@v0.36.4 k8s.io/api@v0.36.4
//	go run pod_requests.go pod_requests.json
//
// CPU is in thousandths, everything else in units.
package main

import (
	"bytes"
	"encoding/json"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

type record struct {
	Pod      json.RawMessage  `json:"pod"`
	Requests map[string]int64 `json:"requests"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	must(err)
	var records []record
	must(json.Unmarshal(content, &records))
	var out bytes.Buffer
	for i := range records {
		var pod v1.Pod
		must(json.Unmarshal(records[i].Pod, &pod))
		// The options of the scheduler where all feature gates are at their defaults of 1.36.
		requests := resource.PodRequests(&pod, resource.PodResourcesOptions{
			UseStatusResources: true,
			InPlacePodLevelResourcesVerticalScalingEnabled: true,
		})
		records[i].Requests = map[string]int64{}
		for name, quantity := range requests {
			if name == v1.ResourceCPU {
				records[i].Requests[string(name)] = quantity.MilliValue()
			} else {
				records[i].Requests[string(name)] = quantity.Value()
			}
		}
		line, err := json.Marshal(records[i])
		must(err)
		out.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		out.Write(line)
	}
	out.WriteString("\n]\n")
	must(os.WriteFile(os.Args[1], out.Bytes(), 0o644))
}
