// A page as the AI SDK's own documentation has it: useChat with resume, cards of calls, approvals and a stop. It keeps its messages where an app would.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, getToolOrDynamicToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { useEffect } from 'react';
import { createRoot } from 'react-dom/client';

const id = location.hash.slice(1) || 'chat';
const kept = JSON.parse(sessionStorage.getItem(id) ?? '[]');
const transport = new DefaultChatTransport({ api: '/api/chat', body: { model: 'm' } });

function Card({ part, answer }) {
  const { state, toolCallId, output, errorText, preliminary, input } = part;
  return (
    <div className="card" data-call={toolCallId} data-state={preliminary ? 'preliminary' : state}>
      <b>{getToolOrDynamicToolName(part)}</b> <i>{state}</i> <code>{JSON.stringify(input)}</code>
      <pre>{typeof output === 'object' ? JSON.stringify(output) : output}{errorText}</pre>
      {state === 'approval-requested' && (
        <>
          <button className="approve" onClick={() => answer({ id: part.approval.id, approved: true })}>approve</button>
          <button className="deny" onClick={() => answer({ id: part.approval.id, approved: false })}>deny</button>
        </>
      )}
    </div>
  );
}

function App() {
  const chat = useChat({
    id, transport, messages: kept, resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const { messages, status, error, sendMessage, addToolApprovalResponse, resumeStream, regenerate } = chat;
  useEffect(() => sessionStorage.setItem(id, JSON.stringify(messages)), [messages]);
  const last = messages.at(-1);
  // The SDK's own stop only leaves: the answer goes on. This ends it.
  const stop = () => fetch(`/api/chat/${encodeURIComponent(id)}/stop`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ responseId: last.metadata?.responseId }),
  });
  Object.assign(window, { chat, stop, messages, send: (text) => sendMessage({ text }), resumeStream, regenerate });
  return (
    <main data-status={status} data-error={error?.message}>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, at) => (
            isToolUIPart(part) ? <Card key={at} part={part} answer={addToolApprovalResponse} />
            : part.type === 'text' || part.type === 'reasoning' ? <p key={at} className={part.type}>{part.text}</p> : null
          ))}
        </section>
      ))}
    </main>
  );
}

createRoot(document.body.appendChild(document.createElement('div'))).render(<App />);
