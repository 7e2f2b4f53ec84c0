"""Runs the loop of one library of agents on one question.

usage: loops.py openai-agents|langchain|pydantic-ai BASE_URL QUESTION

The key is in OPENAI_API_KEY. Prints the answer, or the library's own words for its failure, and then exits with 1.
"""
import sys

import tools


def openai_agents(base, question):
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIResponsesModel(model="scripted", openai_client=AsyncOpenAI(base_url=base))
    agent = Agent(name="copier", model=model, tools=[function_tool(tools.read_file), function_tool(tools.write_file)])
    return Runner.run_sync(agent, question).final_output


def langchain(base, question):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=base)
    answered = create_agent(model, [tools.read_file, tools.write_file]).invoke({"messages": [("user", question)]})
    return answered["messages"][-1].text


def pydantic_ai(base, question):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=base))
    return Agent(model, tools=[tools.read_file, tools.write_file]).run_sync(question).output


LOOPS = {"openai-agents": openai_agents, "langchain": langchain, "pydantic-ai": pydantic_ai}

try:
    print(LOOPS[sys.argv[1]](*sys.argv[2:]))
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
