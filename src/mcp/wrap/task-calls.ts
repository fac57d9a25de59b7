/** Calls that run as tasks: what the tool gives comes later, in the answer to another request. In revision 2025-11-25 that is tasks/result;
 *  in the extension of revision 2026-07-28 tasks/get, whose answer has it as a member once there is one. */
import { applyEdits, memberOf } from "../../text/index.ts";
import { isObject, type RpcMessage, type RpcObject } from "../lines/rpc-message.ts";
import { type PagedCall, pageResult, type ResultCall } from "./page-result.ts";

export interface TaskCalls {
  /** Remembers the call, where the answer to it is that it has become a task. */
  began(result: RpcObject, call: ResultCall): boolean;
  /** The call whose result is asked for. A task that nobody remembers, as after a restart, was a call as well. */
  find(request: RpcMessage): ResultCall;
}

/** Calls that are remembered, the newest. */
const mostTasks = 1_000;

export function createTaskCalls(): TaskCalls {
  const calls = new Map<unknown, ResultCall>();
  return {
    began(result, call) {
      const task = result.resultType === "task" ? result : result.task;
      const taskId = isObject(task) && !("content" in result) ? task.taskId : undefined;
      if (taskId === undefined) return false;
      call.share?.end();
      calls.set(taskId, { tool: call.tool, args: call.args });
      for (const oldest of calls.keys()) if (calls.size > mostTasks) calls.delete(oldest);
      return true;
    },
    find({ params }) {
      const taskId = params?.taskId;
      return calls.get(taskId) ?? { tool: "task", args: { taskId } };
    },
  };
}

/** The message that tells how a task stands, with its result paged once there is one. */
export async function pageTask(message: string, task: RpcObject, options: PagedCall): Promise<string> {
  if (!isObject(task.result)) return message;
  const range = memberOf(message, 0, "result")!.value;
  const text = await pageResult(message.slice(range.start, range.end), task.result, options);
  return applyEdits(message, [{ ...range, text }]);
}
