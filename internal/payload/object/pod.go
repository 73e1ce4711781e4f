package object

import "fmt"

// PodTrouble says in words why a pod is not ready; empty for one that is.
func PodTrouble(pod map[string]any) string {
	if ConditionOf(pod, "Ready").True() {
		return ""
	}
	name := Text(pod, "metadata", "name")
	if node := Text(pod, "spec", "nodeName"); node != "" {
		name += " on " + node
	}
	if phase := Text(pod, "status", "phase"); phase == "Failed" || phase == "Succeeded" {
		return fmt.Sprintf("pod %s has ended (%s)", name, firstOf(Text(pod, "status", "reason"), phase))
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range Maps(pod, "status", list) {
			if why := containerTrouble(c); why != "" {
				return fmt.Sprintf("pod %s: container %s %s", name, Text(c, "name"), why)
			}
		}
	}
	if c := ConditionOf(pod, "PodScheduled"); c.Status == "False" {
		return fmt.Sprintf("pod %s has no node: %s", name, c)
	}
	return "pod " + name + " is not ready"
}

// containerTrouble is what keeps a container from running, or made it end.
func containerTrouble(c map[string]any) string {
	if reason := Text(c, "state", "waiting", "reason"); reason != "" && reason != "PodInitializing" {
		return fmt.Sprintf("waits: %s", firstOf(Text(c, "state", "waiting", "message"), reason))
	}
	if code := Int(c, "state", "terminated", "exitCode"); code != 0 {
		return fmt.Sprintf("ended with exit code %d (%s)", code, firstOf(Text(c, "state", "terminated", "message"), Text(c, "state", "terminated", "reason")))
	}
	if At(c, "state", "running") != nil && At(c, "ready") == false {
		return "runs and is not ready"
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return "no reason given"
}
