// Calls of the server. Every call is a POST with JSON, which no form of another page can send.
export async function call(name, body = {}) {
  let response;
  try {
    response = await fetch(`/api/${name}`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    });
  } catch {
    throw new Error("the server does not answer; start `anabranch serve` again");
  }
  if (!response.headers.get("content-type")?.startsWith("application/json")) throw new Error(await response.text());
  const answer = await response.json();
  if (answer.refused !== undefined) throw new Error(answer.refused);
  return answer;
}
